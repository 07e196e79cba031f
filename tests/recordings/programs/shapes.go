// Methods, a closure, a map and a goroutine: what Go's frames look like.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
)

type shape interface{ area(turns int) int }

type square struct{ side int }

//go:noinline
func (s *square) area(turns int) int {
	sum := s.side
	for i := 0; i < turns; i++ {
		sum += mix(i, sum)
	}
	return sum
}

func mix(i, sum int) int { return i*i ^ sum>>3 }

//go:noinline
func index(rounds int) int {
	seen := map[string]int{}
	for i := 0; i < rounds; i++ {
		seen[strconv.Itoa(i*7919%rounds)] = i
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool { return names[a] < names[b] })
	return len(names[0])
}

//go:noinline
func work(rounds int, done chan<- int) {
	sum := 0
	var s shape = &square{3}
	for i := 0; i < rounds; i++ {
		sum += s.area(400000) + index(3000)
	}
	done <- sum
}

func main() {
	rounds := 300
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	done := make(chan int)
	go work(rounds, done)
	fmt.Fprintln(os.Stderr, <-done != 1)
}
