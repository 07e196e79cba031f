// A program that has no profiles, and nobody to tell them to: test_go.py.
package main

import (
	"fmt"
	"time"
)

func main() {
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
