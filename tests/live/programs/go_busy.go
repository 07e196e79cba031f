// Runs in one function for a quarter of its time, and in another for the rest, and serves net/http/pprof, whose address it
// prints: test_go.py.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
)

//go:noinline
func one(n int) (s int) {
	for i := 0; i < n; i++ {
		s += i * i
	}
	return
}

//go:noinline
func three(n int) (s int) {
	for i := 0; i < 3*n; i++ {
		s += i * i
	}
	return
}

func main() {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println(l.Addr())
	go http.Serve(l, nil)
	for {
		one(1000000)
		three(1000000)
	}
}
