<?php
// work_php.php FRAMES [FILE]: busy FRAMES functions deep, without a pause, until the process is ended. It writes to FILE what it has
// done: pieces of equal work and the process's CPU time in ns, two 64-bit numbers that belong together (the first one again behind
// them tells). Runs on 7.4 and later.
function mix($number)
{
    $number = ($number * 1103515245 + 12345) & 0xffffffff;
    return $number ^ $number >> 13;
}

function piece($number, $rounds)
{
    while (--$rounds >= 0) {
        $number = mix($number);
    }
    return $number;
}

function without_pause($file)
{
    $number = $done = 0;
    while (true) {
        $number = piece($number, 2000);
        $done++;
        if ($file) {
            $used = getrusage();
            $ns = 1000 * (1000000 * ($used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"]) + $used["ru_utime.tv_usec"] + $used["ru_stime.tv_usec"]);
            fseek($file, 0);
            fwrite($file, pack("q3", $done, $ns, $done));
            fflush($file);
        }
    }
}

function descend($depth, $file)
{
    $depth > 0 ? descend($depth - 1, $file) : without_pause($file);
}

// <main>, and of what follows the leaf's two
descend($argv[1] - 5, isset($argv[2]) ? fopen($argv[2], "r+b") : null);
