<?php
// made.php SECONDS: code given as text from two places by turns, so that it lies where the other's was: a closure in line 3 of
// what is $one, or in line 5 of what is $two. Runs on 7.4 and later.
function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

const WORK = '$f = function () { for ($i = 0; $i < 20000; $i++); }; $f();';

function all($seconds) {
    $finish = cpu() + $seconds;
    $one = "\n\n" . WORK . "\n\n";
    $two = "\n\n\n\n" . WORK;
    while (cpu() < $finish) {
        eval($one);
        eval($two);
    }
}

all((float)$argv[1]);
