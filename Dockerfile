# Image of acem3 for the CPU. The build judges the demo and fails if a case has no verdict.
#
#   docker build --build-arg COMMIT="$(git rev-parse --short=7 HEAD)" -t acem3 .
#   docker run --rm acem3 judge assets/demo --out demo
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -w /data acem3 judge cases --out verdicts
#
# Downloads from the hub are in /huggingface and are lost with the container. To keep them, mount an
# existing folder: -v "$HOME/.cache/huggingface:/huggingface"

FROM rust:1.95-trixie AS build
WORKDIR /source
COPY . .
# The commit that `acem3 --version` prints; the build context has no repository.
ARG COMMIT=""
ENV ACEM3_BUILD_COMMIT=$COMMIT
RUN cargo build --release --locked

FROM debian:trixie-slim
# Certificates for downloads from the hub.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /source/target/release/acem3 /usr/local/bin/acem3
# Everyone may write to the cache of the hub: a user of `docker run --user` has no home folder.
RUN useradd --create-home acem3 && install --directory --owner acem3 /acem3 \
    && install --directory --mode 1777 /huggingface
WORKDIR /acem3
COPY --from=build /source/assets/demo assets/demo
ENV HF_HOME=/huggingface
USER acem3
RUN acem3 judge assets/demo --out check \
    && test "$(grep -c '"status":"judged"' check/records.jsonl)" -eq 12 \
    && rm -r check
ENTRYPOINT ["acem3"]
CMD ["--help"]
