// Package assistant is the command dropbell mcp: a server of the Model Context Protocol
// (https://modelcontextprotocol.io) through which an assistant reads drops, figures, forecasts
// and explanations. Each tool is a reading operation of the installation's own OpenAPI document,
// called with a service key. So a tool may read what the key may read, and cannot change anything.
package assistant

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dropbell"
	"dropbell/adapters/config"
)

const usage = `dropbell mcp lets an assistant read an installation by the Model Context Protocol.

  dropbell mcp --server https://drops.example.com        over standard input and output
  dropbell mcp --http 127.0.0.1:8090                     over HTTP, at http://127.0.0.1:8090/mcp

Over standard input and output the key is that of the variable DROPBELL_KEY: a service key with the
scope read. Over HTTP each caller sends a key of its own, as Authorization: Bearer dbk_….
Every tool only reads. Tools that return personal data of customers are missing without --personal-data.

`

const (
	// patience is how long a call of the installation may take.
	patience = 30 * time.Second
	// largest is the largest answer, in bytes, that is passed on. An assistant reads no more at once.
	largest = 256 << 10
)

// Main runs the command until ctx ends or, over standard input, until in ends.
func Main(ctx context.Context, args []string, getenv func(string) string, in io.ReadCloser, out io.Writer) error {
	var address string
	i := installation{client: &http.Client{Timeout: patience}}
	flags := flag.NewFlagSet("mcp", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage); flags.PrintDefaults() }
	flags.StringVar(&i.server, "server", "http://127.0.0.1:8080", "`address` of Dropbell")
	flags.StringVar(&address, "http", "", "`address` to listen on, instead of standard input and output")
	flags.BoolVar(&i.personal, "personal-data", false, "also tools that return personal data of customers")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return config.Mistake{Err: err}
	case flags.NArg() > 0:
		return config.Mistake{Err: fmt.Errorf("unknown argument %q; see dropbell mcp --help", flags.Arg(0))}
	}
	if u, err := url.Parse(i.server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return config.Mistake{Err: errors.New("--server must be an http or https address; see dropbell mcp --help")}
	}
	i.server = strings.TrimRight(i.server, "/")
	if address != "" {
		return i.listen(ctx, address, out)
	}
	key := getenv("DROPBELL_KEY")
	if key == "" {
		return config.Mistake{Err: errors.New("DROPBELL_KEY is missing: a service key with the scope read; see dropbell mcp --help")}
	}
	server, err := i.serverFor(ctx, key)
	if err != nil {
		return err
	}
	answers := &answers{Writer: out}
	err = server.Run(ctx, &mcp.IOTransport{Reader: &wellFormed{in: in, lines: bufio.NewReader(in), refused: answers}, Writer: answers})
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("the assistant at standard input and output: %w", err)
}

// listen serves the protocol over HTTP until ctx ends. It keeps no sessions, so any number of
// processes may stand behind one address.
func (i *installation) listen(ctx context.Context, address string, out io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return config.Mistake{Err: fmt.Errorf("--http: %w", err)}
	}
	fmt.Fprintf(out, "Assistants reach %s at http://%s/mcp\n", i.server, listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", i.handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves requests that carry a service key. Pages of other origins are refused, so that no
// website can use a key that a browser keeps.
func (i *installation) handler() http.Handler {
	type made struct{}
	serve := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server, _ := r.Context().Value(made{}).(*mcp.Server)
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || key == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Send a service key with the scope read: Authorization: Bearer dbk_…", http.StatusUnauthorized)
			return
		}
		server, err := i.serverFor(r.Context(), key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		serve.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), made{}, server)))
	}))
}

// serverFor returns a server whose tools call the installation with key.
func (i *installation) serverFor(ctx context.Context, key string) (*mcp.Server, error) {
	tools, err := i.tools(ctx)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "dropbell", Title: "Dropbell", Version: dropbell.Version()}, &mcp.ServerOptions{
		Instructions: "Reads coupon drops, campaigns and their figures. A template is a drop. Ids are decimal strings, instants are UTC, " +
			"amounts of money are in the smallest unit of their currency and are never added across currencies. Lists are read page by page: pass " +
			"the value of next as after or before. To explain why a customer got no reminder or coupon, use explain-reservation.",
	})
	for _, t := range tools {
		server.AddTool(&t.Tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return i.call(ctx, t, key, r.Params.Arguments), nil
		})
	}
	return server, nil
}
