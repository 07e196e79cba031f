<?php
// deep.php SECONDS DEPTH: down() so many times in itself, then leaf(). Runs on 7.4 and later.
function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

function leaf($finish) {
    while (cpu() < $finish) for ($i = 0; $i < 10000; $i++);
}

function down($depth, $finish) {
    $depth > 0 ? down($depth - 1, $finish) : leaf($finish);
}

down((int)$argv[2], cpu() + (float)$argv[1]);
