// A program that serves net/http/pprof and says what it is asked: test_go_trace.py.
//
//	go_traced [-n N] [-t SECONDS]
//
// N pairs of goroutines hand each other numbers without a pause (0: one pair, a hundred times a second); -t: the server's
// WriteTimeout. It prints its address, and the path of each request.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"time"
)

func answers(questions, numbers chan int) {
	for n := range questions {
		numbers <- n
	}
}

func asks(pause time.Duration) {
	questions, numbers := make(chan int), make(chan int)
	go answers(questions, numbers)
	for {
		questions <- 1
		<-numbers
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}

func main() {
	pairs := flag.Int("n", 0, "")
	timeout := flag.Int("t", 0, "")
	flag.Parse()
	if *pairs == 0 {
		go asks(10 * time.Millisecond)
	}
	for i := 0; i < *pairs; i++ {
		go asks(0)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	server := &http.Server{
		WriteTimeout: time.Duration(*timeout) * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("asked", r.URL.RequestURI())
			http.DefaultServeMux.ServeHTTP(w, r)
		}),
	}
	panic(server.Serve(listener))
}
