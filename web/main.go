// Web serves the console and the HTTP API. Any number of them run side by side.
package main

import (
	"dropbell/adapters/config"
	"dropbell/web/program"
)

func main() { config.Main(program.Main) }
