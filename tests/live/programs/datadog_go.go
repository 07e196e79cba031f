// A program that burns CPU time for some seconds, below Datadog's own profiler of Go or, with "alone", without it:
//
//	datadog_go SECONDS [alone]
//
// tests/live/test_datadog.py builds it.
package main

import (
	"os"
	"strconv"
	"time"

	"github.com/DataDog/dd-trace-go/v2/profiler"
)

//go:noinline
func burn(until time.Time) (sum int) {
	for time.Now().Before(until) {
		for i := 0; i < 1000000; i++ {
			sum += i * i
		}
	}
	return sum
}

func main() {
	seconds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	if len(os.Args) == 2 {
		if err := profiler.Start(profiler.WithPeriod(2*time.Second), profiler.CPUDuration(2*time.Second)); err != nil {
			panic(err)
		}
		defer profiler.Stop()
	}
	burn(time.Now().Add(time.Duration(seconds) * time.Second))
}
