# All programs in one image: docker run … web | worker | worker migrate | dropbell all
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ ./web ./worker ./dropbell

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --no-create-home --shell /usr/sbin/nologin --uid 10001 dropbell
COPY --from=build /out/web /out/worker /out/dropbell /usr/local/bin/
USER dropbell
EXPOSE 8080 8081
CMD ["web"]
