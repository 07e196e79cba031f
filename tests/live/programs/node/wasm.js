// wasm.js SECONDS: calling() calls a function of WebAssembly that turns for a while. At the end: "done". Runs on 12 and later.
'use strict';

const MODULE = Buffer.from("0061736d01000000010601" + "60017f017f030201000708" + "01047370696e00000a1e01" +
    "1c01017f03402001200" + "06a41076c2101200041016b22000d000b20010b", "hex"); // spin(n): n rounds of adding and multiplying
const {spin} = new WebAssembly.Instance(new WebAssembly.Module(MODULE)).exports;

function calling(n) {
    return spin(100000 + n);
}

const end = Date.now() + Number(process.argv[2]) * 1000;
let total = 0;
while (Date.now() < end) {
    total += calling(total % 10);
}
console.log("done", total);
