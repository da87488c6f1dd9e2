# All programs in one image: docker run … web | worker | worker migrate | dropbell all
# PROGRAMS says where they come from: source builds them here, released takes
# those that goreleaser has put beside this file. BuildKit runs only that stage.
ARG PROGRAMS=source

FROM golang:1.26-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
COPY sdk/go/go.mod sdk/go/go.sum sdk/go/
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ ./web ./worker ./dropbell
RUN go -C lab run ./tools/licences /out/THIRD_PARTY.txt

FROM scratch AS released
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/web $TARGETPLATFORM/worker $TARGETPLATFORM/dropbell /out/
COPY .local/THIRD_PARTY.txt /out/

FROM $PROGRAMS AS programs

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --no-create-home --shell /usr/sbin/nologin --uid 10001 dropbell
COPY --from=programs /out/web /out/worker /out/dropbell /usr/local/bin/
COPY --from=programs /out/THIRD_PARTY.txt /usr/share/doc/dropbell/
USER dropbell
EXPOSE 8080 8081
CMD ["web"]
