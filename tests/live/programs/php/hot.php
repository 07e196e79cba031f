<?php
// hot.php SECONDS: 25 frames deep, then hot_a > mid_a > leaf_a and hot_b > array_map > mid_b > leaf_b by turns, as fast as can
// be. A stack with both letters never was. Runs on 7.4 and later.
function leaf_a($n) { while ($n < 12) $n++; return $n; }
function mid_a($n) { return leaf_a($n); }
function hot_a($n) { return mid_a($n); }
function leaf_b($n) { return $n + 1; }
function mid_b($n) { return leaf_b($n); }
function hot_b($n) { return array_map("mid_b", [$n]); }

function turns($count) {
    for ($i = 0; $i < $count; $i++) {
        hot_a($i % 10);
        hot_b($i % 40);
    }
}

function down($depth, $count) {
    return $depth > 0 ? down($depth - 1, $count) : turns($count);
}

function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

function all($seconds) {
    $finish = cpu() + $seconds;
    while (cpu() < $finish) down(25, 2000);
}

all((float)$argv[1]);
