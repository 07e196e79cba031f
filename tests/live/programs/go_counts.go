// A program that allocates, and tells what runtime.ReadMemStats counts of it: test_go_memory.py.
//
// For each byte that it reads: objects of many sizes are allocated by several goroutines, and for "g" garbage is collected.
// Then "done", and after another byte the numbers. Telling them allocates nothing. With an argument it
// allocates without end, and runtime/metrics is read ten thousand times a second.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"
)

var (
	kept  [64][]byte
	small [64]*byte
	stats runtime.MemStats
	input [1]byte
)

func allocate(seed int) {
	for i := 0; i < 200+37*seed; i++ {
		kept[i%64] = make([]byte, 1+i*97%5000)
		small[i%64] = new(byte)
	}
	kept[seed] = make([]byte, 100000+8192*seed)
}

func read() bool {
	n, _ := syscall.Read(0, input[:])
	return n == 1
}

func tell() {
	runtime.ReadMemStats(&stats)
	println(stats.TotalAlloc, stats.Mallocs, stats.Frees, stats.HeapAlloc, stats.NumGC, stats.PauseTotalNs,
		stats.PauseNs[(stats.NumGC+255)%256])
}

func readMetrics() {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for {
		metrics.Read(samples)
		for until := time.Now().Add(50 * time.Microsecond); time.Now().Before(until); {
		}
	}
}

func main() {
	debug.SetGCPercent(-1) // what is freed is by the test's wish
	if len(os.Args) > 1 {
		debug.SetGCPercent(100)
		go readMetrics()
		for i := 0; i < 2; i++ {
			go func(seed int) {
				for {
					allocate(seed)
				}
			}(i)
		}
	}
	println("ready")
	for read() {
		var all sync.WaitGroup
		for i := 0; i < 8; i++ {
			all.Add(1)
			go func(seed int) {
				defer all.Done()
				allocate(seed)
			}(i)
		}
		all.Wait()
		if input[0] == 'g' {
			runtime.GC()
			allocate(3)
		}
		println("done")
		read()
		tell()
	}
}
