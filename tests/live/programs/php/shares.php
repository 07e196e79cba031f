<?php
// shares.php SECONDS WARM: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(). Before them WARM seconds in warm(), while
// a profiler finds it. Runs on 7.4 and later.
//
// At the end it prints the true shares, as CPU clocks around each call tell: "fifty 0.5003 thirty ...".
function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

function fifty($unit) { for ($t = $i = 0; $i < $unit * 5; $i++) $t += $i * $i % 7; }
function thirty($unit) { array_sum(array_map(function ($i) { return $i * $i % 7; }, range(1, $unit * 3))); }
function twenty($unit) { for ($i = 0; $i < $unit * 2; $i++) strlen(str_repeat("x", 200)); }
function warm($finish) { while (cpu() < $finish); }

warm(cpu() + (float)$argv[2]);
$wanted = ["fifty" => 0.005, "thirty" => 0.003, "twenty" => 0.002];
$turns = ["fifty" => 4000, "thirty" => 4000, "twenty" => 4000];
$spent = ["fifty" => 0.0, "thirty" => 0.0, "twenty" => 0.0];
$finish = cpu() + (float)$argv[1];
while (cpu() < $finish) {
    foreach ($turns as $name => $unit) {
        $start = cpu();
        $name($unit);
        $used = max(cpu() - $start, 1e-6);
        $spent[$name] += $used;
        // each turn brings the shares to what they should be
        $turns[$name] = min(max((int)($unit * $wanted[$name] / $used), 100), 200000);
    }
}
foreach ($spent as $name => $used) printf("%s %.4f ", $name, $used / array_sum($spent));
