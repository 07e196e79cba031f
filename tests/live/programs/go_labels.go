// go_labels SECONDS: SECONDS of CPU time in functions that each work under labels of their own (blue, red within blue, plain
// without any, requests with a new span id each), on more goroutines than threads; blue allocates and calls the system, so that
// the runtime works for it, too. Prints the least and the greatest span id.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

var sink [][]byte

//go:noinline
func spin(n int) (s int) {
	for i := 0; i < n; i++ {
		s += i * i
	}
	return
}

//go:noinline
func blue() {
	var kept [][]byte
	for i := 0; i < 40; i++ {
		kept = append(kept, make([]byte, 4000+spin(1000)%2))
		syscall.Getppid()
	}
	runtime.KeepAlive(kept)
}

//go:noinline
func red() { spin(100000) }

//go:noinline
func plain() { spin(100000) }

//go:noinline
func request() { spin(50000) }

func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	background, spans, first := context.Background(), uint64(1<<60), uint64(1<<60)
	var all sync.WaitGroup
	for i := 0; i < 6; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for cpu() < seconds {
				pprof.Do(background, pprof.Labels("tenant", "blue", "größe", "ü 1;"), func(within context.Context) {
					blue()
					pprof.Do(within, pprof.Labels("tenant", "red"), func(context.Context) { red() })
				})
				plain()
				id := strconv.FormatUint(atomic.AddUint64(&spans, 1), 10)
				labels := pprof.Labels("span id", id, "local root span id", id, "trace endpoint", "GET /pay/:id")
				pprof.Do(background, labels, func(context.Context) { request() })
			}
		}()
	}
	all.Wait()
	fmt.Println(first+1, spans)
}
