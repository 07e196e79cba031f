//go:build served

package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"sync/atomic"
)

func init() {
	count := func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			atomic.AddInt64(&connections, 1)
		}
	}
	serve = func(l net.Listener) { panic((&http.Server{ConnState: count}).Serve(l)) }
}
