// Goroutines in C, called back from C, bound to a thread, in a system call, and one that runs a finalizer.
package main

/*
#include <unistd.h>
extern void back(void);
static void sleeps(void) { sleep(10000); }
static void calls(void) { back(); }
*/
import "C"

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"syscall"
	"time"
)

//export back
func back() { select {} }

type thing struct{ x [64]int }

func (t *thing) run() { C.calls() }

func main() {
	for i := 0; i < 3; i++ {
		go C.sleeps()
		go (&thing{}).run()
		go func() {
			runtime.LockOSThread()
			select {}
		}()
		go func() {
			var fds [2]int
			syscall.Pipe(fds[:])
			var b [1]byte
			syscall.Read(fds[0], b[:])
		}()
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	time.Sleep(200 * time.Millisecond)
	go http.Serve(l, nil)
	finalize()
	runtime.GC()
	runtime.GC()
	time.Sleep(200 * time.Millisecond)
	fmt.Println(l.Addr())
	time.Sleep(time.Hour)
}

//go:noinline
func finalize() {
	runtime.SetFinalizer(new(thing), func(*thing) { select {} })
}
