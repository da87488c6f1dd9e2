// Storybook serves every page of the console in every state, theme and language with made-up data,
// for work on its design.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"dropbell/views/stories"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6006", "address to listen on")
	flag.Parse()
	book, err := stories.NewBook()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *addr, Handler: book.Handler(), ReadHeaderTimeout: 5 * time.Second}
	fmt.Printf("storybook: http://%s/\n", *addr)
	log.Fatal(server.ListenAndServe())
}
