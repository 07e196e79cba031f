<?php
// request.php: of a FastCGI server: a request that takes some 5 ms of CPU time.
class Page {
    public function render($rows) { return array_map([$this, "row"], range(1, $rows)); }
    public function row($number) { return md5(str_repeat("row $number", 100)); }
}

echo count((new Page)->render(2000)), "\n";
