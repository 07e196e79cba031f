<?php
// lines.php SECONDS: CPU time in a loop of six lines, of which only the last can fail or call something: PHP writes its place down there.
// Runs on 7.4 and later. All of it in a fiber, if there are any.
function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

function loop($n) {
    $t = $i = $a = $b = $c = 0;
    while ($i < $n) {
        ++$i;
        ++$a;
        ++$b;
        ++$c;
        $t ^= $i;
    }
    return $t;
}

function all($seconds) {
    $finish = cpu() + $seconds;
    while (cpu() < $finish) loop(20000);
}

if (class_exists("Fiber")) (new Fiber("all"))->start((float)$argv[1]); else all((float)$argv[1]);
$loop = new ReflectionFunction("loop");
echo $loop->getStartLine(), "\n";
