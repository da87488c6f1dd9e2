// Worker is the program worker with points at which a test can let it fail.
package main

import (
	"dropbell/adapters/config"
	"dropbell/lab/chaos/mortal"
	"dropbell/worker/program"
)

func main() {
	mortal.Arm()
	config.Main(program.Main)
}
