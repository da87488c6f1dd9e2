// Worker fires timers, carries deliveries and turns events into work. Any
// number of them run side by side.
package main

import (
	"dropbell/adapters/config"
	"dropbell/worker/program"
)

func main() { config.Main(program.Main) }
