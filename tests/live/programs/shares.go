// shares SECONDS: as shares.c: SECONDS of CPU time, 60 % in sixty, 30 % in thirty, 10 % in ten, and the true shares at the
// end. A second goroutine has the collector run, on the system's stack.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(1, &used) // of this thread
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

//go:noinline
func work(seed, rounds uint64) uint64 {
	for i := uint64(0); i < rounds; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407 + seed>>33
	}
	return seed
}

//go:noinline
func sixty(seed uint64) uint64 { return work(seed, 60000000) + 1 }

//go:noinline
func thirty(seed uint64) uint64 { return work(seed, 30000000) + 1 }

//go:noinline
func ten(seed uint64) uint64 { return work(seed, 10000000) + 1 }

var kept [][]byte

func main() {
	runtime.LockOSThread()
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	go func() {
		for {
			kept = append(kept, make([]byte, 1<<16))
			if len(kept) > 100 {
				kept = nil
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	functions := []func(uint64) uint64{sixty, thirty, ten}
	used := make([]float64, 3)
	seed, begin := uint64(1), cpu()
	for cpu()-begin < seconds {
		for i, function := range functions {
			before := cpu()
			seed = function(seed)
			used[i] += cpu() - before
		}
	}
	sum := used[0] + used[1] + used[2]
	fmt.Printf("sixty %.4f thirty %.4f ten %.4f seconds %.2f\n", used[0]/sum, used[1]/sum, used[2]/sum, sum)
	if seed == 0 {
		fmt.Println(seed)
	}
}
