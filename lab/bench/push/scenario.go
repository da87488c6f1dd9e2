// Package push measures how fast pushes to iPhones are made and answered through the channel's
// sender. The comparison is a bare HTTP/2 client that posts prepared bodies to the same service
// with as many concurrent requests. The service is a process of its own that reads a push and
// answers 200.
//
//	go tool task bench:push -- -n 200000 -runs 5
package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	sink := f.Bool("sink", false, "internal: be the service")
	n := f.Int("n", 200_000, "pushes of each run")
	sends := f.Int("sends", 32, "calls of the sender at a time, of 20 pushes each; the worker makes as many for WORKER_BATCHES × WORKER_CALLS")
	runs := f.Runs(5)
	return func(ctx context.Context) error {
		if *sink {
			return serve()
		}
		return bench(ctx, *n, *sends, *runs)
	}
}

// serve answers pushes and prints its address.
func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	s := &http.Server{Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}, // Apple's limit
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
		})}
	s.Protocols.SetUnencryptedHTTP2(true)
	return s.Serve(listener)
}

func bench(ctx context.Context, n, sends, runs int) error {
	service, err := scenario.Serve(ctx, nil, "push", "-sink")
	if err != nil {
		return err
	}
	defer service.Stop()
	url := service.Ready
	sender, err := newSender(url)
	if err != nil {
		return err
	}
	defer func() { _ = sender.Close() }()
	messages := messagesTo(n)
	var ratios []float64
	fmt.Printf("%-12s %14s %14s %8s\n", "", "bare client/s", "sender/s", "ratio")
	for run := range runs + 1 { // the first warms up
		bare, err := rate(n, func() error { return posts(ctx, url, messages, sends*sender.ChunkSize()) })
		if err != nil {
			return err
		}
		ours, err := rate(n, func() error { return pushes(ctx, sender, messages, sends) })
		if err != nil {
			return err
		}
		if run == 0 {
			continue
		}
		ratios = append(ratios, ours/bare)
		fmt.Printf("%-12d %14.0f %14.0f %8.2f\n", run, bare, ours, ours/bare)
	}
	fmt.Printf("median of the ratios: %.2f\n", stack.Median(ratios))
	return nil
}

func newSender(url string) (*push.Sender, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	s, err := apns.New(apns.Config{Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), KeyID: "ABC123DEFG", TeamID: "DEF123GHIJ",
		Topic: "com.example.shop", URL: url})
	if err != nil {
		return nil, err
	}
	return push.New(push.Options{}, s), nil
}

// messagesTo returns the reminder of one drop to n users with an iPhone each.
func messagesTo(n int) []delivery.Message {
	now := time.Now()
	subject := &delivery.Subject{Kind: delivery.KindReminder, TemplateID: 7, TemplateName: "Moon cake night", ShopNumber: "10", ShopName: "Tea House",
		Slot: 2, DueAt: now, OpensAt: now.Add(10 * time.Minute), ClaimURL: "https://shop.example/claim/7"}
	content := delivery.Render(nil, *subject, delivery.WebPush, user.User{Locale: "en"})
	messages := make([]delivery.Message, n)
	for i := range messages {
		var token [32]byte
		_, _ = rand.Read(token[:])
		to := &user.User{ID: user.ID(i + 1), Devices: []user.Device{{Platform: user.IOS, Token: hex.EncodeToString(token[:])}}}
		messages[i] = delivery.Message{To: to, Channel: delivery.WebPush, Subject: subject, Content: &content}
	}
	return messages
}

// rate is how many of n are done a second.
func rate(n int, do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return float64(n) / time.Since(began).Seconds(), err
}

// pushes sends the messages through the sender.
func pushes(ctx context.Context, s *push.Sender, messages []delivery.Message, sends int) error {
	var group errgroup.Group
	group.SetLimit(sends)
	for len(messages) > 0 {
		chunk := messages[:min(len(messages), s.ChunkSize())]
		messages = messages[len(chunk):]
		group.Go(func() error {
			for _, r := range s.Send(ctx, chunk) {
				if r.Status != delivery.Delivered {
					return fmt.Errorf("not delivered: %s", r.Detail)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// posts sends a body as large as ours to as many addresses.
func posts(ctx context.Context, url string, messages []delivery.Message, parallel int) error {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	body := bytes.Repeat([]byte("x"), 420)
	var next atomic.Int64
	var group errgroup.Group
	for range parallel {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(messages) {
					return nil
				}
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/3/device/"+messages[i].To.Devices[0].Token, bytes.NewReader(body))
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					return errors.New(response.Status)
				}
			}
		})
	}
	return group.Wait()
}
