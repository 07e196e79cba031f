// A program with known allocations, contention, waiting goroutines and a leak, which then is quiet: test_go.py.
//
//	go_profiles [-l ADDRESS] [-b N]
//
// -l: serves net/http/pprof there ("unix:PATH" is a socket); -b N: so many different stacks have allocated.
// It prints "ready ADDRESS" when all has been done, and after each line that it reads, having done it once more, "again"
// with how many connections there were.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	kept    = make([][]byte, 0, 1000)
	dropped []byte
	mutex   sync.Mutex
	started sync.WaitGroup
)

//go:noinline
func keeps(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 4096))
	}
}

//go:noinline
func drops(n int) {
	for i := 0; i < n; i++ {
		dropped = make([]byte, 512)
	}
}

// One stack for each bit pattern of n.
//
//go:noinline
func zero(n, depth int) { way(n, depth-1) }

//go:noinline
func one(n, depth int) { way(n, depth-1) }

func way(n, depth int) {
	if depth == 0 {
		dropped = make([]byte, 64)
	} else if n>>uint(depth-1)&1 == 0 {
		zero(n, depth)
	} else {
		one(n, depth)
	}
}

//go:noinline
func holds() {
	mutex.Lock()
	time.Sleep(20 * time.Millisecond)
	mutex.Unlock()
}

//go:noinline
func waits() {
	done := make(chan int)
	go func() {
		time.Sleep(10 * time.Millisecond)
		done <- 1
	}()
	<-done
}

//go:noinline
func leaks() {
	started.Done()
	<-make(chan int) // which nobody else has
}

func work(buckets int) {
	keeps(100)
	drops(1000)
	for i := 0; i < buckets; i++ {
		way(i, 17)
	}
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			holds()
		}()
	}
	all.Wait()
	waits()
	started.Add(20)
	for i := 0; i < 20; i++ {
		go leaks()
	}
	started.Wait()
	runtime.GC()
	runtime.GC()
}

var connections int64

// Set by the file that imports net/http/pprof, where it is part of the program.
var serve func(net.Listener)

func main() {
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	address := flag.String("l", "", "")
	buckets := flag.Int("b", 0, "")
	flag.Parse()
	told := "nowhere"
	if *address != "" {
		network, place := "tcp", *address
		if strings.HasPrefix(place, "unix:") {
			network, place = "unix", place[5:]
		}
		listener, err := net.Listen(network, place)
		if err != nil {
			panic(err)
		}
		told = listener.Addr().String()
		go serve(listener)
	}
	work(*buckets)
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready", told)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		work(0)
		fmt.Println("again", atomic.LoadInt64(&connections))
	}
	time.Sleep(time.Hour) // else, with nobody who could wake it, the runtime ends it
}
