<?php
// known_stacks.php SECONDS: CPU time in stacks that the program itself writes down. Runs on 7.4 and later.
//
// JSON on standard output: "stacks", each root first with [function, file, line] for every frame below burn(), as
// debug_backtrace tells; "burn", its first and last line; "version". The time goes into burn().
$recorded = [];
$recording = true;

function burn() {
    global $recording;
    if ($recording) tell();
    $total = 0;
    for ($i = 0; $i < 6000; $i++) {
        $total += $i * $i % 7;
    }
    return $total;
}

function label($entry) {
    if (in_array($entry["function"], ["include", "include_once", "require", "require_once"])) return "<main>";
    if ($entry["function"] === "eval") return "<eval>";
    $name = preg_replace('/\{closure:.*\}$/s', '{closure}', $entry["function"]);
    return isset($entry["class"]) ? explode("\0", $entry["class"])[0] . "::$name" : $name;
}

function tell() {
    global $recorded;
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $stack = [];
    for ($i = 2; $i <= count($trace); $i++) {
        $name = $i < count($trace) ? label($trace[$i]) : "<main>";
        $at = $trace[$i - 1];
        $stack[] = [$name, $at["file"] ?? "", $at["line"] ?? 0];
    }
    $stack = array_reverse($stack);
    if (!in_array($stack, $recorded)) $recorded[] = $stack;
}

function recursion($depth) {
    if ($depth == 0) return burn();
    return recursion($depth - 1) + 1;
}

function closures() {
    $outer = function ($n) {
        $inner = fn($m) => burn() + $m;
        return $inner($n);
    };
    $outer(1);
    array_map($outer, [1, 2]);
    array_map(function ($one) { return array_sum(array_map(function ($two) { return burn() + $two; }, [$one])); }, [1]);
}

function callbacks() {
    $list = [3, 1, 2];
    usort($list, function ($a, $b) { burn(); return $a - $b; });
    preg_replace_callback('/a/', function ($m) { burn(); return "b"; }, "aba");
    call_user_func_array("recursion", [1]);
    array_walk($list, "each_of");
}

function each_of($value, $key) {
    burn();
}

function numbers() {
    yield burn();
    yield burn();
}

function delegating() {
    yield from numbers();
    yield burn();
}

function delegating_twice() {
    yield from delegating();
    yield from numbers();
}

function generators() {
    foreach (delegating_twice() as $one) {
        burn();
    }
    foreach (numbers() as $one) {
        burn();
    }
    $by_hand = numbers(); $by_hand->current(); // making one runs it a little
    $by_hand->next();
    $sent = numbers(); $sent->current();
    $sent->send(1); // each resumption comes to a burn(), or the moment of it would be a stack that is told nowhere
    iterator_to_array(numbers(), false);
}

class Shop implements ArrayAccess {
    private $items = [];

    public function __construct() { burn(); }
    public function sell($price) { return burn() + $price; }
    public static function of_class() { return burn(); }
    public function __call($name, $arguments) { return burn(); }
    public static function __callStatic($name, $arguments) { return burn(); }
    public function __get($name) { return burn(); }
    public function __toString() { burn(); return "shop"; }
    public function __invoke() { return burn(); }
    #[\ReturnTypeWillChange]
    public function offsetGet($at) { return burn(); }
    #[\ReturnTypeWillChange]
    public function offsetSet($at, $value) { burn(); }
    #[\ReturnTypeWillChange]
    public function offsetExists($at) { return burn() > 0; }
    #[\ReturnTypeWillChange]
    public function offsetUnset($at) { burn(); }
    public function bound() { return function () { return burn(); }; }
}

class Corner extends Shop {
    public function sell($price) { return parent::sell($price) + self::of_class(); }
    public function __destruct() { burn(); }
}

function methods() {
    $shop = new Corner;
    $shop->sell(1);
    Corner::of_class();
    $shop->missing(1);
    Shop::missing_too();
    $shop->property;
    $text = "a $shop";
    $shop();
    $shop[1];
    $shop[2] = 3;
    isset($shop[1]);
    ($shop->bound())();
    $nameless = new class { public function run() { return burn(); } };
    $nameless->run();
    array_map([$shop, "sell"], [1]);
}

function over_several_lines() {
    return max(
        burn(),
        recursion(
            1
        ),
        Shop::of_class()
    );
}

function exceptions() {
    try {
        throw new RuntimeException("no");
    } catch (RuntimeException $e) {
        burn();
    } finally {
        burn();
    }
}

function given_as_text() {
    eval('burn();');
    eval('

    $f = function () { burn(); }; $f();');
}

function included() {
    include __DIR__ . "/known_included.php";
    from_include();
}

function größe() {
    burn();
}

function fibers() {
    $fiber = new Fiber(function () { burn(); Fiber::suspend(); recursion(1); });
    $fiber->start();
    burn();
    $fiber->resume();
}

function round_of_all() {
    recursion(0);
    recursion(30);
    closures();
    callbacks();
    generators();
    methods();
    over_several_lines();
    exceptions();
    given_as_text();
    included();
    größe();
    if (class_exists("Fiber")) fibers();
}

function text($value) { // json_encode() is not in every PHP
    if (is_int($value)) return $value;
    if (!is_array($value)) return '"' . addcslashes($value, "\"\\") . '"';
    if (isset($value[0])) return "[" . implode(", ", array_map("text", $value)) . "]";
    $fields = array_map(function ($key) use ($value) { return "\"$key\": " . text($value[$key]); }, array_keys($value));
    return "{" . implode(", ", $fields) . "}";
}

function cpu() {
    $u = getrusage();
    return $u["ru_utime.tv_sec"] + $u["ru_stime.tv_sec"] + ($u["ru_utime.tv_usec"] + $u["ru_stime.tv_usec"]) / 1e6;
}

$finish = cpu() + (float)$argv[1];
while (cpu() < $finish) {
    round_of_all();
    $recording = false;
}
$burn = new ReflectionFunction("burn");
echo text(["version" => PHP_VERSION, "stacks" => $recorded, "file" => __FILE__, "burn" => [$burn->getStartLine(), $burn->getEndLine()]]), "\n";
