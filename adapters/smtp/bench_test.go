package smtp_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"strconv"
	"testing"

	gomail "github.com/wneessen/go-mail"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
)

// BenchmarkSend compares the sender with the library alone on one connection;
// one operation is one mail.
func BenchmarkSend(b *testing.B) {
	messages := sendertest.Messages(delivery.Email, 50)
	b.Run("library", func(b *testing.B) {
		client := bareClient(b, (&relay{discard: true}).start(b, nil).Addr)
		for i := 0; b.Loop(); i++ {
			m := messages[i%len(messages)]
			mime := gomail.NewMsg()
			if err := mime.From("drops@shop.example"); err != nil {
				b.Fatal(err)
			}
			if err := mime.To(m.To.Email); err != nil {
				b.Fatal(err)
			}
			mime.Subject(m.Content.Title)
			mime.SetBodyString(gomail.TypeTextPlain, m.Content.Text)
			mime.AddAlternativeString(gomail.TypeTextHTML, m.Content.HTML)
			if err := client.Send(mime); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sender", func(b *testing.B) {
		s := (&relay{discard: true}).start(b, nil).sender(b, nil)
		for i := 0; i < b.N; i += len(messages) {
			s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
		}
	})
	for name, key := range benchKeys(b) {
		b.Run("sender, signed with "+name, func(b *testing.B) {
			s := (&relay{discard: true}).start(b, nil).sender(b, func(c *smtp.Config) {
				c.DKIM = &smtp.DKIM{Domain: "shop.example", Selector: "drop", Key: key}
			})
			b.ResetTimer() // generating a key takes long
			for i := 0; i < b.N; i += len(messages) {
				s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
			}
		})
	}
	b.Run("sender on eight connections", func(b *testing.B) {
		s := (&relay{discard: true}).start(b, nil).sender(b, nil)
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; ; n = 0 {
				for n < len(messages) && pb.Next() {
					n++
				}
				s.Send(b.Context(), messages[:n])
				if n < len(messages) {
					return
				}
			}
		})
	})
}

func benchKeys(b *testing.B) map[string]crypto.Signer {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	return map[string]crypto.Signer{"Ed25519": edwards, "RSA of 2048 bits": rivest}
}

func bareClient(b *testing.B, address string) *gomail.Client {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		b.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		b.Fatal(err)
	}
	client, err := gomail.NewClient(host, gomail.WithPort(number), gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithoutNoop())
	if err != nil {
		b.Fatal(err)
	}
	if err := client.DialWithContext(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}
