// Web is the program web with points at which a test can let it fail.
package main

import (
	"dropbell/adapters/config"
	"dropbell/lab/chaos/killable"
	"dropbell/web/program"
)

func main() {
	killable.Arm()
	config.Main(program.Main)
}
