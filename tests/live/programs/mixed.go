// mixed SECONDS: SECONDS of CPU time of four goroutines that hash, sort, fill maps and sleep for a moment; the collector runs.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(0, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

//go:noinline
func hash(count int) (sum byte) {
	block := make([]byte, 4096)
	for i := 0; i < count; i++ {
		digest := sha256.Sum256(block)
		block[i%4096] = digest[0]
		sum += digest[1]
	}
	return
}

//go:noinline
func order(count int) (sum int) {
	for i := 0; i < count; i++ {
		values := make([]int, 2000)
		for j := range values {
			values[j] = (j * 7919) % 2003
		}
		sort.Ints(values)
		sum += values[3]
	}
	return
}

//go:noinline
func fill(count int) (sum int) {
	for i := 0; i < count; i++ {
		squares := map[int]int{}
		for j := 0; j < 500; j++ {
			squares[j*j] = j
		}
		sum += len(squares)
	}
	return
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for cpu() < seconds {
				hash(60)
				order(6)
				fill(12)
				time.Sleep(100 * time.Microsecond)
			}
		}()
	}
	all.Wait()
	fmt.Printf("%.3f\n", cpu())
}
