// Package shop is a demo shop: the pages that end users see, from reserving a reminder to paying
// with the coupon. Its backend is written as a shop's engineers would write it: it signs tokens
// of its users, uses the Go SDK with a service key at payment, and verifies webhooks. Its pages
// use the web components. Orders are kept in memory.
package shop

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// Number is the shop's number in Dropbell.
const Number = "20"

// Config has the settings of the shop.
type Config struct {
	Addr   string // host:port to listen on
	Server string // address of Dropbell, such as http://127.0.0.1:8080
	Key    string // service key with every scope
	// Messages is the address of the page that shows pushes which were sent; "" = there is none.
	Messages string
	Tokens   dropbell.UserTokens
	Log      *slog.Logger
}

// Shop serves the pages of the shop. [New] makes it, [Start] also lets it listen.
type Shop struct {
	config  Config
	address string // of the shop itself
	client  *dropbell.Client
	pages   *template.Template
	server  *http.Server
	hooks   hooks
	again   time.Duration // pause before the last step of an order is repeated
	ended   context.Context
	end     context.CancelFunc

	mu     sync.Mutex
	drop   string          // id of the newest drop; "" = none
	draw   string          // id of the newest draw; "" = none
	phones map[string]bool // users whose phone has the shop's app
	orders map[string]order
}

//go:embed files
var files embed.FS

// New returns a shop that is reached at address.
func New(c Config, address string) (*Shop, error) {
	client, err := dropbell.New(c.Server, dropbell.ServiceKey(c.Key), dropbell.WithTries(8))
	if err != nil {
		return nil, err
	}
	pages, err := template.New("").Funcs(template.FuncMap{"yuan": yuan, "say": say}).ParseFS(files, "files/*.html")
	if err != nil {
		return nil, err
	}
	s := &Shop{config: c, address: address, client: client, pages: pages, again: 10 * time.Second, orders: map[string]order{}, phones: map[string]bool{}}
	s.ended, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Start listens on the configured address and registers the shop with Dropbell, which must
// already answer.
func Start(ctx context.Context, c Config) (*Shop, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	s, err := New(c, "http://"+listener.Addr().String())
	if err != nil {
		listener.Close()
		return nil, err
	}
	s.server = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("the demo shop has ended", "err", err)
		}
	}()
	if err := s.Register(ctx); err != nil {
		// The pages work without; the log of events stays empty.
		c.Log.Warn("the demo shop is not registered completely", "err", err)
	}
	return s, nil
}

// Close ends the shop.
func (s *Shop) Close(ctx context.Context) error {
	s.end()
	return s.server.Shutdown(ctx)
}

// Handler returns the shop's pages.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.product)
	mux.HandleFunc("GET /token", s.token)
	mux.HandleFunc("GET /dropbell-push.js", s.pushWorker)
	mux.HandleFunc("GET /checkout", s.checkout)
	mux.HandleFunc("POST /orders", s.pay)
	mux.HandleFunc("GET /orders/{id}", s.receipt)
	mux.HandleFunc("POST /orders/{id}/refund", s.refund)
	mux.HandleFunc("POST /drops", s.openDrop)
	mux.HandleFunc("POST /draws", s.openDraw)
	mux.HandleFunc("POST /another-user", s.anotherUser)
	mux.HandleFunc("POST /phone", s.phone)
	mux.HandleFunc("GET /events", s.events)
	mux.Handle("POST /hooks", &s.hooks)
	mux.Handle("GET /files/", http.FileServerFS(files))
	protect := http.NewCrossOriginProtection()
	protect.AddInsecureBypassPattern("POST /hooks") // Dropbell's, which are signed
	return s.headers(protect.Handler(mux))
}

// headers sets the content security policy that a page with the components needs: scripts may
// come from the shop and from Dropbell, and the page may call both.
func (s *Shop) headers(next http.Handler) http.Handler {
	policy := fmt.Sprintf("default-src 'self'; script-src 'self' %[1]s; connect-src 'self' %[1]s; frame-ancestors 'none'; base-uri 'none'; form-action 'self'", s.config.Server)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

const userCookie = "demo_shop_user"

// user returns the id of the page's user. A new visitor is signed in as a new user.
func (s *Shop) user(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(userCookie); err == nil {
		if id, err := strconv.ParseInt(c.Value, 10, 64); err == nil && id > 0 {
			return c.Value
		}
	}
	return newUser(w)
}

func newUser(w http.ResponseWriter) string {
	id := strconv.FormatInt(2_000_000+rand.Int64N(7_000_000), 10)
	http.SetCookie(w, &http.Cookie{Name: userCookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: 30 * 24 * 3600})
	return id
}

func (s *Shop) anotherUser(w http.ResponseWriter, r *http.Request) {
	newUser(w)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// phone registers a phone with the shop's app for the user, as the app would after its start.
func (s *Shop) phone(w http.ResponseWriter, r *http.Request) {
	p, to := s.page(w, r), "/"
	user, locale := p.User, p.Lang
	if _, err := s.client.PutDeviceWithResponse(r.Context(), &api.PutDeviceParams{XUserID: &user}, api.DeviceChange{Platform: api.DeviceChangePlatformAndroid,
		Token: "demo-shop-phone-" + user, AppVersion: new("1.0"), Locale: &locale}); err != nil {
		s.config.Log.Warn("the phone is not registered", "err", err)
		to = "/?error=" + url.QueryEscape(refusalText(err))
	} else {
		s.mu.Lock()
		s.phones[user] = true
		s.mu.Unlock()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// token is where the components get the token of the signed-in user.
func (s *Shop) token(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(userCookie)
	if err != nil {
		http.Error(w, "nobody is signed in", http.StatusUnauthorized)
		return
	}
	token, err := s.config.Tokens.Sign(c.Value, time.Now(), time.Hour)
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, `{"token":%q}`, token)
}

// pushWorker is the service worker that shows push messages: the worker of Dropbell, imported into
// a script of the shop's own origin.
func (s *Shop) pushWorker(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	fmt.Fprintf(w, "self.dropbell = { title: \"Leaf & Kettle\", icon: \"/files/leaf.svg\", url: \"/\" };\nimportScripts(%q);\n", s.config.Server+"/components/v1-push.js")
}

// page has the data that every page shows.
type page struct {
	Lang, Server, User string
	Messages           string
	Phone              bool // the user's phone has the shop's app
	Product            product
	Drop, Draw         string // id; "" = none
	Error              string
	Lines              []line
	Total              int64
	Offer              offer
	Order              order
	Events             []seen
}

func (s *Shop) page(w http.ResponseWriter, r *http.Request) page {
	lang := "en"
	if strings.HasPrefix(r.Header.Get("Accept-Language"), "zh") {
		lang = "zh-CN"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	user := s.user(w, r)
	return page{Lang: lang, Server: s.config.Server, User: user, Messages: s.config.Messages, Phone: s.phones[user], Product: tea(), Drop: s.drop, Draw: s.draw}
}

// say returns the text of the page's language.
func say(lang, english, chinese string) string {
	if lang == "zh-CN" {
		return chinese
	}
	return english
}

func (s *Shop) render(w http.ResponseWriter, name string, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.pages.ExecuteTemplate(w, name, p); err != nil {
		s.config.Log.Warn("a page of the demo shop", "page", name, "err", err)
	}
}

func (s *Shop) product(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	p.Error = r.URL.Query().Get("error")
	s.render(w, "product.html", p)
}

func (s *Shop) events(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	p.Events = s.hooks.list()
	s.render(w, "events.html", p)
}

// yuan writes an amount of minor units.
func yuan(minor int64) string { return fmt.Sprintf("¥%d.%02d", minor/100, minor%100) }
