// A program that allocates from many stacks, and waits for locks and channels, behind net/http/pprof:
//
//	go_delta_load STACKS
//
// prints its port; GET /work makes it work a while. tests/live/test_go_delta.py builds it.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const depth = 9 // two functions each

var held [][]byte

//go:noinline
func further(path, left int) {
	if left == 0 {
		b := make([]byte, 16<<(path&3))
		if path%5 == 0 {
			held = append(held, b)
		}
		return
	}
	rest := path>>2 | (path&3)<<30
	switch path & 3 {
	case 0:
		one(rest, left-1)
	case 1:
		two(rest, left-1)
	case 2:
		three(rest, left-1)
	default:
		four(rest, left-1)
	}
}

//go:noinline
func one(path, left int) { further(path, left) }

//go:noinline
func two(path, left int) { further(path, left) }

//go:noinline
func three(path, left int) { further(path, left) }

//go:noinline
func four(path, left int) { further(path, left) }

var lock sync.Mutex

func contend(name string, done chan<- string) {
	for i := 0; i < 20; i++ {
		lock.Lock()
		time.Sleep(50 * time.Microsecond)
		lock.Unlock()
	}
	done <- name
}

func wait() {
	done := make(chan string)
	for _, name := range []string{"a", "b", "c"} {
		go contend(name, done)
	}
	for i := 0; i < 3; i++ {
		<-done
	}
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	stacks, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	round := 0
	http.HandleFunc("/work", func(out http.ResponseWriter, _ *http.Request) {
		for i := 0; i < stacks; i++ {
			further(i+round*stacks/10, depth)
		}
		wait()
		runtime.GC()
		round++
		fmt.Fprintln(out, round)
	})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
