// large SECONDS: allocates large pieces of memory, which Go does on the system's stack, below the goroutine that asked.
package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

var kept []byte

//go:noinline
func allocate() {
	kept = make([]byte, 256<<10)
	debug.FreeOSMemory()
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	for begin := time.Now(); time.Since(begin).Seconds() < seconds; {
		allocate()
	}
}
