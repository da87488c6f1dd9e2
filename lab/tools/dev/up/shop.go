package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"dropbell/lab/tools/dev/shop"
	dropbell "dropbell/sdk/go"
)

// chooseShop gives the demo shop an address; web allows the shop's pages to call the API. There
// is no shop without demo data, or if another issuer makes the tokens of users.
func (s *stack) chooseShop(context.Context) error {
	if s.settings.get("DEMO") == "0" || s.settings.get("AUTH_JWT_SECRET") == "" {
		s.settings.openTo()
		return nil
	}
	p, err := port(3000, "the demo shop", portOf(s.settings.get("HTTP_ADDR")), portOf(s.settings.get("WORKER_HTTP_ADDR")))
	if err != nil {
		return err
	}
	s.settings.shop = fmt.Sprintf("127.0.0.1:%d", p)
	s.settings.openTo(p)
	return nil
}

// examplePorts are the ports on which the programs below examples/ listen.
var examplePorts = []int{4000, 4001}

// openTo lets pages of this machine that are served on the ports, and the examples' pages, call
// the API, beside the origins that the caller may have set.
func (s *settings) openTo(ports ...int) {
	var origins []string
	if given := strings.Trim(s.get("SHOP_ORIGINS"), ", "); given != "" {
		origins = append(origins, given)
	}
	for _, port := range append(ports, examplePorts...) {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			if origin := fmt.Sprintf("http://%s:%d", host, port); !strings.Contains(","+strings.Join(origins, ",")+",", ","+origin+",") {
				origins = append(origins, origin)
			}
		}
	}
	s.set("SHOP_ORIGINS", strings.Join(origins, ","))
}

// startShop starts the demo shop in this process. The rest is worth keeping without it.
func (s *stack) startShop(ctx context.Context) error {
	if s.settings.shop == "" {
		return nil
	}
	out, err := os.Create(filepath.Join(local, "log", "shop.log"))
	if err != nil {
		return err
	}
	shop, err := shop.Start(ctx, shop.Config{Addr: s.settings.shop, Server: s.settings.url(), Key: s.settings.get("ADMIN_API_KEY"), Messages: s.settings.catcher,
		Tokens: dropbell.UserTokens{Secret: s.settings.get("AUTH_JWT_SECRET"), Issuer: s.settings.get("AUTH_JWT_ISSUER"), Audience: s.settings.get("AUTH_JWT_AUDIENCE")},
		Log:    slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		say("there is no demo shop: %v", err)
		s.settings.shop = ""
		return out.Close()
	}
	s.shop = shop
	s.stops = append(s.stops, func(ctx context.Context) error {
		defer out.Close()
		return shop.Close(ctx)
	})
	return nil
}
