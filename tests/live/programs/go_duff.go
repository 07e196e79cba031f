// Zeroes and copies large values, half of its time each, on threads that C code started: test_golang.py.
package main

import "C"

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type large struct{ at [96]uint64 }

//go:noinline
func zero(i uint64) uint64 {
	var b large
	b.at[i&63] = i
	return b.at[(i+5)&63]
}

//go:noinline
func copied(from *large, i uint64) uint64 {
	b := *from
	b.at[i&63] = i
	return b.at[(i+5)&63]
}

func main() {
	var from large
	var sum uint64
	seconds, _ := strconv.Atoi(os.Args[1])
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		for i := uint64(0); i < 100000; i++ {
			sum += zero(i) + copied(&from, i)
		}
	}
	fmt.Println(sum)
}
