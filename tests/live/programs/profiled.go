// Allocates, contends, waits in several ways, then serves its own profiles on the loopback interface.
// Arguments: memory rate (0: Go's default), allocations, goroutines that wait, that run, and pairs that wake each other.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

type node struct {
	next *node
	pad  [40]byte
}
type thing struct{ data []byte }
type outer struct{ *thing }
type waiter interface{ wait(chan int) }

var kept [][]byte
var nodes *node
var things []*outer

func small(n int) []byte { return make([]byte, n) }

//go:noinline
func allocate(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, small(1000))
		nodes = &node{next: nodes}
		things = append(things, &outer{&thing{make([]byte, 64)}})
		_ = fmt.Sprintf("garbage %d", i)
	}
}

func (t *thing) wait(ch chan int) { <-ch }

//go:noinline
func deep(n int, ch chan int) int {
	if n == 0 {
		return <-ch
	}
	var pad [200]byte
	pad[n%200] = 1
	return deep(n-1, ch) + int(pad[0])
}

func contend() {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 20; j++ {
				mu.Lock()
				time.Sleep(200 * time.Microsecond)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

func wait(i int, ch, full chan int, mu *sync.Mutex) {
	switch i % 7 {
	case 0:
		go func() { <-ch }()
	case 1:
		go deep(i%5*30, ch)
	case 2:
		go mu.Lock()
	case 3:
		go time.Sleep(time.Hour)
	case 4:
		var w waiter = outer{&thing{}}
		go w.wait(ch)
	case 5:
		go func() {
			defer func() {
				recover()
				select {}
			}()
			var p *thing
			p.data = nil
		}()
	case 6:
		labels := pprof.Labels("tenant", strconv.Itoa(i%3), "kind", "x")
		go pprof.Do(context.Background(), labels, func(context.Context) { full <- 1 })
	}
}

func spin() {
	for n := 0; ; n++ {
		if n < 0 {
			println(n)
		}
	}
}

func churn() {
	a, b := make(chan int), make(chan int)
	go func() {
		for {
			b <- <-a
		}
	}()
	go func() {
		for {
			a <- 1
			<-b
		}
	}()
}

func number(i int) int {
	n, _ := strconv.Atoi(os.Args[i])
	return n
}

func main() {
	if number(1) > 0 {
		runtime.MemProfileRate = number(1)
	}
	runtime.SetBlockProfileRate(2)
	runtime.SetMutexProfileFraction(1)
	allocate(number(2))
	contend()
	ch, full := make(chan int), make(chan int)
	var mu sync.Mutex
	mu.Lock()
	for i := 0; i < number(3); i++ {
		wait(i, ch, full, &mu)
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + number(4))
	for i := 0; i < number(5); i++ {
		churn()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	time.Sleep(100 * time.Millisecond)
	go http.Serve(l, nil)
	for i := 0; i < 3; i++ {
		runtime.GC()
	}
	for i := 0; i < number(4); i++ {
		go spin()
	}
	fmt.Println(l.Addr(), runtime.NumGoroutine())
	time.Sleep(time.Hour)
}
