package main

import (
	"os"
	"os/signal"
	"syscall"
)

// work does nothing until the worker is asked to stop.
func work() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	os.WriteFile("worker-stopped", nil, 0o644)
}
