// Dropbell contains both programs and the operator's commands in one binary. For a small shop,
// one process runs everything.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"dropbell"
	"dropbell/adapters/config"
	"dropbell/dropbell/assistant"
	"dropbell/dropbell/drawcheck"
	web "dropbell/web/program"
	worker "dropbell/worker/program"
)

func main() { config.Main(command) }

const usage = `dropbell takes coupon drops from the first reminder to the last claim.

  dropbell web                run the console and the HTTP API until SIGTERM
  dropbell worker             run timers, deliveries, events and housekeeping until SIGTERM
  dropbell all                run both in this process until SIGTERM; if one of them fails, both end
  dropbell migrate [contract] bring the database up to date, and exit, as worker migrate does
  dropbell listen ...         post a shop's events to a server on this machine, for developers;
                              see dropbell listen --help
  dropbell audit ...          recompute from the rows what is booked, and exit, as worker audit does
  dropbell doctor ...         examine the installation before an evening and say what to do, and
                              exit, as worker doctor does
  dropbell rush ...           let made-up customers claim from the copy of a rehearsal, and exit, as worker rush does
  dropbell verify-draw ...    recompute a draw from its file or address and say whether it followed
                              its card; see dropbell verify-draw --help
  dropbell mcp ...            let an assistant read drops, figures and explanations by the Model
                              Context Protocol; see dropbell mcp --help
  dropbell version            print the version
  dropbell help               print this

dropbell web and dropbell worker take the arguments that the programs web and worker take:
dropbell worker --help lists all commands of an operator.

The variables below configure both. dropbell all serves web on HTTP_ADDR and the health and
measurements of worker on WORKER_HTTP_ADDR, and opens up to DATABASE_MAX_CONNS connections for each.

Exit codes: 0 done, or stopped by a signal; 1 failed, or the doctor or a check of a draw found a fault; 2 the environment or an argument is wrong;
those of audit are in dropbell audit --help.

`

// command runs the command that args name.
func command(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return config.Mistake{Err: fmt.Errorf("a command is missing; see dropbell --help")}
	}
	switch args[0] {
	case "web":
		return web.Main(ctx, args[1:], getenv, out)
	case "worker":
		return worker.Main(ctx, args[1:], getenv, out)
	case "migrate", "audit", "doctor", "rush":
		return worker.Main(ctx, args, getenv, out)
	case "listen":
		return listen(ctx, args[1:], getenv, out)
	case "verify-draw":
		return drawcheck.Main(ctx, args[1:], out)
	case "mcp":
		return assistant.Main(ctx, args[1:], getenv, os.Stdin, out)
	case "all":
		if len(args) > 1 {
			return config.Mistake{Err: fmt.Errorf("dropbell all takes no argument; see dropbell --help")}
		}
		return all(ctx, getenv, out)
	case "version", "-version", "--version":
		fmt.Fprintln(out, dropbell.About("dropbell"))
		return nil
	case "help", "-h", "-help", "--help":
		fmt.Fprint(out, usage)
		config.Help(out)
		return nil
	}
	return config.Mistake{Err: fmt.Errorf("unknown command %q; see dropbell --help", args[0])}
}
