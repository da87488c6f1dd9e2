package providers

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	gomail "github.com/wneessen/go-mail"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

// mailConns is the default number of connections that the worker keeps.
const mailConns = 8

func mailing(n int) trial {
	return trial{name: "mail", channel: delivery.Email, n: n, loops: []loop{{"bare loop", mailAll}}, ours: []string{reminders}, env: func(addr string) []string {
		return []string{"SMTP_URL=smtp://" + addr + "?from=drops@shop.example"}
	}}
}

// mailAll sends the mails one after another over each of the kept connections.
func mailAll(ctx context.Context, j job) error {
	contents := [2]delivery.Content{delivery.Render(nil, j.about, delivery.Email, user.User{Locale: "zh-CN"}), delivery.Render(nil, j.about, delivery.Email, user.User{Locale: "en"})}
	var next atomic.Int64
	errs := make([]error, mailConns)
	var all sync.WaitGroup
	for g := range mailConns {
		all.Go(func() {
			client, err := dial(ctx, j.addr)
			if err != nil {
				errs[g] = err
				return
			}
			defer client.Close()
			for id := int(next.Add(1)); id <= j.n && errs[g] == nil; id = int(next.Add(1)) {
				errs[g] = mailOne(client, id, contents[id%2])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func dial(ctx context.Context, addr string) (*gomail.Client, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	client, err := gomail.NewClient(host, gomail.WithPort(number), gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithoutNoop(), gomail.WithoutRset())
	if err != nil {
		return nil, err
	}
	return client, client.DialWithContext(ctx)
}

func mailOne(client *gomail.Client, id int, c delivery.Content) error {
	encoding := gomail.EncodingQP
	if id%2 == 0 {
		encoding = gomail.EncodingB64
	}
	m := gomail.NewMsg(gomail.WithEncoding(encoding), gomail.WithNoDefaultUserAgent())
	if err := errors.Join(m.From("drops@shop.example"), m.AddToFormat("User "+strconv.Itoa(id), stack.Address(id))); err != nil {
		return err
	}
	m.Subject(c.Title)
	m.SetDate()
	m.SetMessageIDWithValue(strconv.Itoa(id) + "@shop.example")
	m.SetBodyString(gomail.TypeTextPlain, c.Text)
	m.AddAlternativeString(gomail.TypeTextHTML, c.HTML)
	return client.Send(m)
}
