// A TLS server in Go's words: tells its port, and each connection what was agreed.
//
//	tls_server -cert FILE -key FILE [-min 1.2|1.3] [-max 1.2|1.3] [-authority FILE] [-no-tickets]
//
// GODEBUG=fips140=only makes it one of a FIPS host.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
)

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(connection *tls.Conn) {
	defer connection.Close()
	if _, err := bufio.NewReader(connection).ReadString('\n'); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	state := connection.ConnectionState()
	name := ""
	if len(state.PeerCertificates) > 0 {
		name = state.PeerCertificates[0].Subject.CommonName
	}
	fmt.Fprintf(connection, "HTTP/1.0 200 OK\r\n\r\n%s, %s, Cipher, resumed %t, client %q\n", map[bool]string{true: "Reused",
		false: "New"}[state.DidResume], map[uint16]string{tls.VersionTLS12: "TLSv1.2", tls.VersionTLS13: "TLSv1.3"}[state.Version],
		state.DidResume, name)
}

func main() {
	certificate, key := flag.String("cert", "", ""), flag.String("key", "", "")
	least, most := flag.String("min", "1.2", ""), flag.String("max", "1.3", "")
	authority, noTickets := flag.String("authority", "", ""), flag.Bool("no-tickets", false, "")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	check(err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: versions[*least], MaxVersion: versions[*most],
		SessionTicketsDisabled: *noTickets}
	if *authority != "" {
		text, err := os.ReadFile(*authority)
		check(err)
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(text)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	check(err)
	fmt.Println("ACCEPT", listener.Addr())
	for {
		connection, err := listener.Accept()
		check(err)
		go answer(connection.(*tls.Conn))
	}
}
