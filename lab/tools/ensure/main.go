// Command ensure installs the servers that the tests need and this machine lacks: PostgreSQL,
// PgBouncer, Redis and a browser.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"dropbell/adapters/localstack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := localstack.Ensure(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
