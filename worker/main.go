// Worker fires timers, runs deliveries and handles events. Any number of workers
// run concurrently.
package main

import (
	"dropbell/adapters/config"
	"dropbell/worker/program"
)

func main() { config.Main(program.Main) }
