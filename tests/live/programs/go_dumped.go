// Goroutines that wait in known ways; SIGUSR1 makes it print what the runtime says of them.
package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
)

var lock sync.Mutex

func locks()              { lock.Lock() }
func receives(c chan int) { <-c }
func sends(c chan int)    { c <- 1 }
func naps()               { time.Sleep(time.Hour) }
func selects(a, b chan int) {
	select {
	case <-a:
	case <-b:
	}
}

func main() {
	lock.Lock()
	never := make(chan int)
	for i := 0; i < 5; i++ {
		go receives(never)
	}
	go locks()
	go locks()
	go sends(make(chan int))
	go naps()
	go selects(make(chan int), make(chan int))
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	time.Sleep(100 * time.Millisecond)
	os.Stdout.WriteString("ready\n")
	<-asked
	pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
	os.Stdout.WriteString("end\n")
	naps()
}
