// A program that has net/http/pprof and serves it nowhere, but has servers of other kinds: test_go.py counts how often each
// is connected to. Prints "ready", then, for each line that it reads, "NAME COUNT" of each server.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

type counting struct {
	net.Listener
	name  string
	count int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		atomic.AddInt64(&c.count, 1)
	}
	return conn, err
}

var all []*counting

func listen(name string) *counting {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	all = append(all, &counting{Listener: l, name: name})
	return all[len(all)-1]
}

// Calls `serve` for each connection.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go serve(conn)
	}
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}

func main() {
	other := http.NewServeMux()
	other.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		log.Printf("request %s", r.URL.Path)
		fmt.Fprintln(w, "hello")
	})
	go accept(listen("echo"), func(c net.Conn) { io.Copy(c, c); c.Close() })
	go accept(listen("silent"), func(c net.Conn) { time.Sleep(time.Hour) })
	go accept(listen("http2"), func(c net.Conn) { // sends its settings, and says nothing of HTTP/1
		c.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		io.Copy(io.Discard, c)
		c.Close()
	})
	go http.Serve(listen("logs"), other)
	go http.Serve(tls.NewListener(listen("tls"), &tls.Config{Certificates: []tls.Certificate{certificate()}}), other)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var counts []string
		for _, l := range all {
			counts = append(counts, fmt.Sprint(l.name, " ", atomic.LoadInt64(&l.count)))
		}
		fmt.Println(strings.Join(counts, " "))
	}
}
