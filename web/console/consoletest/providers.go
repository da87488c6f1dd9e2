package consoletest

import (
	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/delivery/provider"
)

// judged returns the error of the provider's sender about its settings, like the program does.
func judged(p provider.Provider, secrets map[string]string) error {
	s, _, err := app.ProviderSender(config.Config{}, p, secrets, nil, nil)
	if err != nil {
		return err
	}
	return s.Close()
}
