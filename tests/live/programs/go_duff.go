// go_duff SECONDS of CPU time: zeroes and copies large values, half of its time each, on threads that C code started: test_golang.py.
package main

import "C"

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
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

func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

func main() {
	var from large
	var sum uint64
	seconds, _ := strconv.Atoi(os.Args[1])
	for cpu() < float64(seconds) {
		for i := uint64(0); i < 100000; i++ {
			sum += zero(i) + copied(&from, i)
		}
	}
	fmt.Println(sum)
}
