// A thousand goroutines in many states, and net/http/pprof, whose port it prints: test_go_texts.py knows how many are
// of which kind, and adds the function "generic".
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
	"sync"
	"syscall"
	"time"
)

type worker struct{ channel chan int }

func (w *worker) receive() { <-w.channel }

func deep(depth int, channel chan int) int {
	if depth == 0 {
		return <-channel
	}
	return deep(depth-1, channel) + 1
}

func nilReceive() {
	var none chan int
	<-none
}

func nilSend() {
	var none chan int
	none <- 1
}

func send(channel chan int) { channel <- 1 }

func selectTwo(one, other chan int) {
	select {
	case <-one:
	case <-other:
	}
}

func selectNone() { select {} }

func sleep() { time.Sleep(time.Hour) }

func locked(channel chan int) {
	runtime.LockOSThread()
	<-channel
}

func readPipe() {
	in, out, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	defer out.Close() // later than ever: else the collector closes it
	in.Read(make([]byte, 1))
}

func accept() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	listener.Accept()
}

func callSystem() {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		panic(err)
	}
	syscall.Read(ends[0], make([]byte, 1))
}

func lock(mutex *sync.Mutex)      { mutex.Lock() }
func readLock(rw *sync.RWMutex)   { rw.RLock() }
func waitGroup(w *sync.WaitGroup) { w.Wait() }

func condition(c *sync.Cond) {
	c.L.Lock()
	c.Wait()
}

func labelled(channel chan int) {
	labels := pprof.Labels("user", "a [b]: \"c\", 5 minutes]:", "plain", "d7")
	pprof.Do(context.Background(), labels, func(context.Context) { <-channel })
}

func start(count int, run func()) {
	for i := 0; i < count; i++ {
		go run()
	}
}

var garbage [][]byte

func allocate(w http.ResponseWriter, r *http.Request) {
	for i := 0; i < 1000; i++ {
		garbage = append(garbage[:0], make([]byte, 100000))
	}
	runtime.GC()
	fmt.Fprintln(w, "done")
}

func main() {
	channel := make(chan int)
	var mutex sync.Mutex
	var rw sync.RWMutex
	var group sync.WaitGroup
	mutex.Lock()
	rw.Lock()
	group.Add(1)
	cond := sync.NewCond(&sync.Mutex{})
	start(100, (&worker{channel}).receive)
	start(30, func() { deep(150, channel) })
	start(20, nilReceive)
	start(20, nilSend)
	blocked := make(chan int)
	start(70, func() { send(blocked) })
	start(100, func() { selectTwo(channel, make(chan int)) })
	start(40, selectNone)
	start(150, sleep)
	start(10, func() { locked(channel) })
	start(40, readPipe)
	start(40, accept)
	start(10, callSystem)
	start(100, func() { lock(&mutex) })
	start(60, func() { readLock(&rw) })
	start(110, func() { waitGroup(&group) })
	start(50, func() { condition(cond) })
	start(50, func() { generic(channel) })
	start(20, func() { labelled(channel) })
	http.HandleFunc("/allocate", allocate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	time.Sleep(200 * time.Millisecond)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
