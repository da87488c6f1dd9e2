// Command standin imitates Redis in memory, in a process of its own, for machines on which no
// Redis can be installed. It loses all data when it ends.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: standin 127.0.0.1:6379")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func serve(addr string) error {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(addr); err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	// Its clock must be advanced, or nothing would ever expire.
	const step = 100 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			server.FastForward(step)
		case <-stop:
			return nil
		}
	}
}
