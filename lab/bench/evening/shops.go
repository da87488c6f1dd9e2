package evening

import (
	"context"
	"encoding/json"
	"fmt"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/message"
	"dropbell/domain/seal"
	"dropbell/lab/bench/stack"
)

// firstShop is the number of the first shop, which has the dense drop.
const firstShop = 10

// sealKey seals the secrets of providers.
const sealKey = "a key of the benchmark with 32 bytes"

// languages are the languages of texts. Each shop has texts in the two languages of users and in
// one more.
var languages = []string{"de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ja", "ko", "vi", "th"}

// makeShops gives each of n shops texts, languages, a brand and providers of its own, and removes
// those of an earlier run. The providers are the sink.
func makeShops(ctx context.Context, s *stack.Stack, n int, to sink) error {
	if _, err := s.SQL.Exec(ctx, `truncate message_versions, providers cascade`); err != nil {
		return err
	}
	box, err := seal.New(provider.SealPurpose, sealKey)
	if err != nil {
		return err
	}
	for shop := int64(firstShop); shop < firstShop+int64(n); shop++ {
		if err := makeTexts(ctx, s, shop); err != nil {
			return err
		}
		for c, p := range map[delivery.Channel]struct {
			kind    provider.Kind
			url     string
			secrets map[string]string
		}{
			delivery.Email:   {provider.SMTP, to.mail, nil},
			delivery.SMS:     {provider.JSON, to.sms, map[string]string{"token": "bench"}},
			delivery.Webhook: {provider.Webhook, to.webhook, map[string]string{"secret": "whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoaXMgYmVuY2htYXJrIGtub3dz"}},
		} {
			var id int64
			if err := s.SQL.QueryRow(ctx, `insert into providers (shop_number, channel, kind, name, enabled, settings, changed, created_by)
				values ($1, $2, $3, 'Of shop ' || $1::bigint, true, jsonb_build_object('url', $4::text), nextval('provider_changes'), 'bench') returning id`,
				shop, c, p.kind, p.url).Scan(&id); err != nil {
				return err
			}
			for name := range p.secrets {
				raw, _ := json.Marshal(p.secrets) // strings only
				if _, err := s.SQL.Exec(ctx, `update providers set secrets = $2, secret_names = array[$3::text] where id = $1`, id, box.Seal(seal.Row("providers", id), raw), name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// makeTexts stores the shop's brand and its texts of reminders on each channel.
func makeTexts(ctx context.Context, s *stack.Stack, shop int64) error {
	own := languages[shop%int64(len(languages))]
	store := func(kind message.Kind, c message.Channel, language string, t message.Text) error {
		raw, _ := json.Marshal(t) // strings and numbers only
		_, err := s.SQL.Exec(ctx, `insert into message_versions (shop_number, kind, channel, language, content, created_by) values ($1, $2, $3, $4, $5, 'bench')`,
			shop, kind, c, language, raw)
		return err
	}
	if err := store(message.Settings, "", "", message.Text{Shop: &message.Shop{Language: own, Logo: fmt.Sprintf("https://shop-%d.example/logo.png", shop),
		Colour: fmt.Sprintf("#%06x", shop*7919%(1<<24)), Sender: fmt.Sprintf("Shop %d", shop), ReplyTo: fmt.Sprintf("answers@shop-%d.example", shop), Postal: "Long Street 1"}}); err != nil {
		return err
	}
	for _, language := range []string{"en", "zh-CN", own} {
		body := fmt.Sprintf("Shop %d (%s): {{drop}} opens in {{minutes}} minutes", shop, language)
		for _, c := range []message.Channel{message.App, message.SMS, message.Webhook} {
			t := message.Text{Body: body}
			if c.Titled() {
				t.Title = "{{drop}}"
			}
			if err := store(message.Reminder, c, language, t); err != nil {
				return err
			}
		}
		if err := store(message.Reminder, message.Email, language, message.Text{Title: "{{drop}}", Blocks: []message.Block{{Type: message.Heading, Text: "{{drop}}"},
			{Type: message.Words, Text: body}, {Type: message.Coupon}, {Type: message.Button, Text: "Claim"}, {Type: message.Footer, Text: "Shop"}}}); err != nil {
			return err
		}
	}
	return nil
}
