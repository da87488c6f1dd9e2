// A worker that does nothing.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		os.WriteFile("migrated", []byte(os.Getenv("DATABASE_URL")), 0o644)
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	os.WriteFile("worker-stopped", nil, 0o644)
}
