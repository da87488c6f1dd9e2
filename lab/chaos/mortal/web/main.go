// Web is the program web with points at which a test can let it fail.
package main

import (
	"dropbell/adapters/config"
	"dropbell/lab/chaos/mortal"
	"dropbell/web/program"
)

func main() {
	mortal.Arm()
	config.Main(program.Main)
}
