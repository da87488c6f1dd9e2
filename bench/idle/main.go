// Idle measures what the programs occupy when there is nothing to do: both
// with every channel configured, after half a minute of rest.
//
//	go run ./bench/idle -seconds 30
package main

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"time"

	"dropbell/bench/stack"
)

func main() {
	seconds := flag.Int("seconds", 30, "rest before measuring")
	flag.Parse()
	if err := bench(context.Background(), time.Duration(*seconds)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// maxMiB is what each program may occupy at rest.
const maxMiB = 64

func bench(ctx context.Context, rest time.Duration) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(stack.Machine(ctx, s))
	env, err := everything()
	if err != nil {
		return err
	}
	programs := map[string]*stack.Process{}
	names := []string{"web", "worker"}
	for _, name := range names {
		p, err := s.StartProgram(ctx, name, env...)
		if err != nil {
			return err
		}
		defer p.Stop()
		programs[name] = p
	}
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Printf("%-8s %10s %10s %10s\n", "program", "RSS MiB", "peak MiB", "floor met")
	for _, name := range names {
		now, peak := programs[name].Memory()
		met := "yes"
		if now >= maxMiB {
			met = "NO"
		}
		fmt.Printf("%-8s %10.1f %10.1f %10s\n", name, now, peak, met)
	}
	return nil
}

// everything configures all channels, a first admin and a key.
func everything() ([]string, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return []string{
		"AUTH_JWT_SECRET=a secret that only this benchmark knows",
		"ADMIN_EMAIL=admin@bench.example", "ADMIN_PASSWORD=nobody signs in here", "ADMIN_API_KEY=dbk_nobodyusesthisonehere",
		"SMTP_URL=smtp://127.0.0.1:1?from=drops@shop.example", "SMS_URL=http://127.0.0.1:1/", "SMS_TOKEN=nobody",
		"WEBHOOK_URL=http://127.0.0.1:1/", "WEBHOOK_SECRET=whsec_YSBzZWNyZXQgdGhhdCBub2JvZHkgdXNlcw==",
		"VAPID_SUBJECT=mailto:drops@shop.example", "VAPID_PUBLIC_KEY=" + encode(key.PublicKey().Bytes()), "VAPID_PRIVATE_KEY=" + encode(key.Bytes()),
	}, nil
}
