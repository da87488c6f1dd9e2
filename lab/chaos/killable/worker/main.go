// Worker is the program worker with points at which a test can let it fail.
package main

import (
	"dropbell/adapters/config"
	"dropbell/lab/chaos/killable"
	"dropbell/worker/program"
)

func main() {
	killable.Arm()
	config.Main(program.Main)
}
